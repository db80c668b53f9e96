"""PyTorch's side of models_bench.cpp: the models of examples/ in PyTorch's own modules."""
import contextlib

import torch
import torch.nn.functional as F
from torch import nn


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.pool = nn.MaxPool2d(2)
        self.fc1, self.fc2, self.fc3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        h = self.pool(F.relu(self.conv1(x)))
        h = self.pool(F.relu(self.conv2(h))).flatten(1)
        return self.fc3(F.relu(self.fc2(F.relu(self.fc1(h)))))


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.downsample = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return F.relu(self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))) + self.downsample(x))


class ResNet18(nn.Module):
    def __init__(self, channels, width):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        blocks, inputs = [], width
        for i in range(4):
            outputs = width << i
            blocks += [BasicBlock(inputs, outputs, 2 if i else 1), BasicBlock(outputs, outputs, 1)]
            inputs = outputs
        self.blocks, self.fc = nn.Sequential(*blocks), nn.Linear(inputs, 10)

    def forward(self, x):
        return self.fc(self.blocks(F.relu(self.bn1(self.conv1(x)))).mean((2, 3)))


BLOCK, CHARACTERS = 64, 65


class CharGpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.meaning, self.place = nn.Embedding(CHARACTERS, 128), nn.Embedding(BLOCK, 128)
        self.layers = nn.ModuleList(nn.TransformerEncoderLayer(128, 4, 512, 0.0, "gelu", batch_first=True, norm_first=True)
                                    for _ in range(4))
        self.norm, self.score = nn.LayerNorm(128), nn.Linear(128, CHARACTERS)
        self.mask = nn.Transformer.generate_square_subsequent_mask(BLOCK)

    def forward(self, tokens):
        x = self.meaning(tokens) + self.place.weight[:tokens.shape[1]]
        for layer in self.layers:
            x = layer(x, src_mask=self.mask, is_causal=True)
        return self.score(self.norm(x))


class CharLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.meaning = nn.Embedding(CHARACTERS, 64)
        self.memory, self.score = nn.LSTM(64, 256, 2, batch_first=True), nn.Linear(256, CHARACTERS)

    def forward(self, tokens):
        return self.score(self.memory(self.meaning(tokens))[0])


def step(net, optimizer, loss):
    def body():
        optimizer.zero_grad()
        loss(net).backward()
        optimizer.step()
    return body


def pictures(make, shape):
    def prepare():
        net = make()
        x, y = torch.rand(shape), torch.randint(0, 10, (shape[0],))
        return step(net, torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9), lambda f: F.cross_entropy(f(x), y))
    return prepare


def text(make, half=False):
    def prepare():
        net = make()
        x, y = (torch.randint(0, CHARACTERS, (32, BLOCK)) for _ in range(2))

        def loss(f):
            with torch.autocast("cpu", torch.bfloat16) if half else contextlib.nullcontext():
                return F.cross_entropy(f(x).flatten(0, 1), y.flatten())
        return step(net, torch.optim.AdamW(net.parameters(), lr=1e-3), loss)
    return prepare


def register():
    subjects = {}
    for batch in (16, 64, 256):
        subjects[f"models/lenet_{batch}"] = (pictures(LeNet, (batch, 1, 28, 28)), 1)
    subjects["models/resnet18_32"] = (pictures(lambda: ResNet18(3, 64), (32, 3, 32, 32)), 1)
    subjects["models/chargpt_32"] = (text(CharGpt), 1)
    subjects["models/chargpt_32_bf16"] = (text(CharGpt, half=True), 1)
    subjects["models/lstm_32"] = (text(CharLstm), 1)
    return subjects
