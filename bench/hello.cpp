// Prints one tensor: the time of this program is the time that Tenon takes to start.
#include <iostream>

#include <tenon/tenon.h>

int main() { std::cout << tenon::tensor({1, 2, 3}) + 1 << "\n"; }
