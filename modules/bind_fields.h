// Binds every field of an aggregate: one line a field count, the most that the language allows without naming the fields.
#pragma once

#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>

namespace tenon::nn::reflect {

inline constexpr size_t max_fields = 64;

template <class... F>
constexpr std::tuple<F*...> pointers(F&... fields) {
  return std::tuple<F*...>(std::addressof(fields)...);
}

// Pointers to the `N` fields of `t`. An error here says that the fields of `t` were miscounted: its num_fields is not the number
// that the error tells, or it holds a C array (use std::array), a reference or a bit-field, or inherits fields. Give it the right
// number, or a `void fields(nn::FieldVisitor& v)` that names its children.
// clang-format off
template <size_t N, class T>
constexpr auto bind(T& t) {
  static_assert(N <= max_fields, "a module of more than 64 fields: put some into a child module, or define void fields(nn::FieldVisitor& v)");
  static_assert(N > 0 || std::is_empty_v<T>, "num_fields is 0, but the module has data members");
  if constexpr (N == 0) { (void)t; return std::tuple<>(); }
  else if constexpr (N == 1) { auto& [aa] = t; return pointers(aa); }
  else if constexpr (N == 2) { auto& [aa,ab] = t; return pointers(aa,ab); }
  else if constexpr (N == 3) { auto& [aa,ab,ac] = t; return pointers(aa,ab,ac); }
  else if constexpr (N == 4) { auto& [aa,ab,ac,ad] = t; return pointers(aa,ab,ac,ad); }
  else if constexpr (N == 5) { auto& [aa,ab,ac,ad,ae] = t; return pointers(aa,ab,ac,ad,ae); }
  else if constexpr (N == 6) { auto& [aa,ab,ac,ad,ae,af] = t; return pointers(aa,ab,ac,ad,ae,af); }
  else if constexpr (N == 7) { auto& [aa,ab,ac,ad,ae,af,ag] = t; return pointers(aa,ab,ac,ad,ae,af,ag); }
  else if constexpr (N == 8) { auto& [aa,ab,ac,ad,ae,af,ag,ah] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah); }
  else if constexpr (N == 9) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba); }
  else if constexpr (N == 10) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb); }
  else if constexpr (N == 11) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc); }
  else if constexpr (N == 12) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd); }
  else if constexpr (N == 13) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be); }
  else if constexpr (N == 14) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf); }
  else if constexpr (N == 15) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg); }
  else if constexpr (N == 16) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh); }
  else if constexpr (N == 17) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca); }
  else if constexpr (N == 18) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb); }
  else if constexpr (N == 19) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc); }
  else if constexpr (N == 20) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd); }
  else if constexpr (N == 21) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce); }
  else if constexpr (N == 22) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf); }
  else if constexpr (N == 23) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg); }
  else if constexpr (N == 24) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch); }
  else if constexpr (N == 25) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da); }
  else if constexpr (N == 26) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db); }
  else if constexpr (N == 27) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc); }
  else if constexpr (N == 28) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd); }
  else if constexpr (N == 29) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de); }
  else if constexpr (N == 30) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df); }
  else if constexpr (N == 31) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg); }
  else if constexpr (N == 32) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh); }
  else if constexpr (N == 33) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea); }
  else if constexpr (N == 34) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb); }
  else if constexpr (N == 35) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec); }
  else if constexpr (N == 36) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed); }
  else if constexpr (N == 37) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee); }
  else if constexpr (N == 38) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef); }
  else if constexpr (N == 39) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg); }
  else if constexpr (N == 40) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh); }
  else if constexpr (N == 41) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa); }
  else if constexpr (N == 42) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb); }
  else if constexpr (N == 43) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc); }
  else if constexpr (N == 44) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd); }
  else if constexpr (N == 45) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe); }
  else if constexpr (N == 46) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff); }
  else if constexpr (N == 47) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg); }
  else if constexpr (N == 48) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh); }
  else if constexpr (N == 49) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga); }
  else if constexpr (N == 50) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb); }
  else if constexpr (N == 51) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc); }
  else if constexpr (N == 52) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd); }
  else if constexpr (N == 53) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge); }
  else if constexpr (N == 54) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf); }
  else if constexpr (N == 55) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf,gg] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf,gg); }
  else if constexpr (N == 56) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf,gg,gh] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf,gg,gh); }
  else if constexpr (N == 57) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf,gg,gh,ha] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf,gg,gh,ha); }
  else if constexpr (N == 58) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf,gg,gh,ha,hb] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf,gg,gh,ha,hb); }
  else if constexpr (N == 59) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf,gg,gh,ha,hb,hc] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf,gg,gh,ha,hb,hc); }
  else if constexpr (N == 60) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf,gg,gh,ha,hb,hc,hd] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf,gg,gh,ha,hb,hc,hd); }
  else if constexpr (N == 61) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf,gg,gh,ha,hb,hc,hd,he] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf,gg,gh,ha,hb,hc,hd,he); }
  else if constexpr (N == 62) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf,gg,gh,ha,hb,hc,hd,he,hf] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf,gg,gh,ha,hb,hc,hd,he,hf); }
  else if constexpr (N == 63) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf,gg,gh,ha,hb,hc,hd,he,hf,hg] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf,gg,gh,ha,hb,hc,hd,he,hf,hg); }
  else if constexpr (N == 64) { auto& [aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf,gg,gh,ha,hb,hc,hd,he,hf,hg,hh] = t; return pointers(aa,ab,ac,ad,ae,af,ag,ah,ba,bb,bc,bd,be,bf,bg,bh,ca,cb,cc,cd,ce,cf,cg,ch,da,db,dc,dd,de,df,dg,dh,ea,eb,ec,ed,ee,ef,eg,eh,fa,fb,fc,fd,fe,ff,fg,fh,ga,gb,gc,gd,ge,gf,gg,gh,ha,hb,hc,hd,he,hf,hg,hh); }
}
// clang-format on

}  // namespace tenon::nn::reflect
