# FGV_HARDEN: flags that make a mistake in memory harder to use, as far as the compiler knows
# them. What the user's own CFLAGS and CPPFLAGS say comes behind, and wins. Sets HARDEN_CFLAGS,
# HARDEN_CPPFLAGS and HARDEN_LDFLAGS for everything, and PIE_CFLAGS and PIE_LDFLAGS for
# programs, where the compiler does not make them position-independent by itself.
AC_DEFUN([FGV_HARDEN_CFLAG], [
	AC_CACHE_CHECK([whether $CC knows $1], [AS_TR_SH([fgv_cv_flag_$1])], [
		fgv_save_CFLAGS=$CFLAGS
		CFLAGS="$CFLAGS -Werror $1"
		AC_COMPILE_IFELSE([AC_LANG_PROGRAM([], [])],
			[AS_TR_SH([fgv_cv_flag_$1])=yes], [AS_TR_SH([fgv_cv_flag_$1])=no])
		CFLAGS=$fgv_save_CFLAGS])
	AS_VAR_IF([AS_TR_SH([fgv_cv_flag_$1])], [yes], [HARDEN_CFLAGS="$HARDEN_CFLAGS $1"])])

AC_DEFUN([FGV_HARDEN_LDFLAG], [
	AC_CACHE_CHECK([whether the linker knows $1], [AS_TR_SH([fgv_cv_link_$1])], [
		fgv_save_LDFLAGS=$LDFLAGS
		LDFLAGS="$LDFLAGS $1"
		AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
			[AS_TR_SH([fgv_cv_link_$1])=yes], [AS_TR_SH([fgv_cv_link_$1])=no])
		LDFLAGS=$fgv_save_LDFLAGS])
	AS_VAR_IF([AS_TR_SH([fgv_cv_link_$1])], [yes], [HARDEN_LDFLAGS="$HARDEN_LDFLAGS $1"])])

AC_DEFUN([FGV_HARDEN], [
	FGV_HARDEN_CFLAG([-fstack-protector-strong])
	FGV_HARDEN_CFLAG([-fstack-clash-protection])
	FGV_HARDEN_CFLAG([-fcf-protection=full])
	FGV_HARDEN_LDFLAG([-Wl,-z,relro])
	FGV_HARDEN_LDFLAG([-Wl,-z,now])
	FGV_HARDEN_LDFLAG([-Wl,-z,noexecstack])
	# The sanitizers replace the functions that it would check. Where the distribution's
	# compiler defines it already, ours takes its place.
	AS_IF([test -z "$SAN_CFLAGS"], [
		AC_CACHE_CHECK([for the highest _FORTIFY_SOURCE], [fgv_cv_fortify], [
			fgv_save_CFLAGS=$CFLAGS
			fgv_cv_fortify=2
			CFLAGS="$CFLAGS -O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3"
			AC_COMPILE_IFELSE([AC_LANG_PROGRAM([#include <string.h>], [])],
				[fgv_cv_fortify=3])
			CFLAGS=$fgv_save_CFLAGS])
		AS_CASE([" $CPPFLAGS $CFLAGS "], [*_FORTIFY_SOURCE*], [],
			[HARDEN_CPPFLAGS="-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=$fgv_cv_fortify"])])
	AC_CACHE_CHECK([whether $CC makes position-independent programs], [fgv_cv_pie], [
		AC_COMPILE_IFELSE([AC_LANG_SOURCE([
			#ifndef __PIE__
			#error
			#endif
		])], [fgv_cv_pie=yes], [fgv_cv_pie=no])])
	AS_IF([test "x$fgv_cv_pie" = xno], [PIE_CFLAGS=-fPIE PIE_LDFLAGS=-pie])
	AC_SUBST([HARDEN_CFLAGS])
	AC_SUBST([HARDEN_CPPFLAGS])
	AC_SUBST([HARDEN_LDFLAGS])
	AC_SUBST([PIE_CFLAGS])
	AC_SUBST([PIE_LDFLAGS])
])
