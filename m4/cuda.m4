# FGV_CUDA_TOOLKIT: finds the CUDA toolkit or says in one line what to do. Looks at --with-cuda,
# then CUDA_HOME, then nvcc on the PATH, then the usual places. FairGV itself needs the toolkit's
# headers and its libcudart.so.13, for the list of what that exports; nvcc builds the CUDA programs
# of the demo and of the tests.
AC_DEFUN([FGV_CUDA_TOOLKIT], [
AC_ARG_WITH([cuda], [AS_HELP_STRING([--with-cuda=DIR],
	[the CUDA toolkit (default: CUDA_HOME, nvcc on the PATH, /usr/local/cuda)])])
AC_ARG_WITH([nvcc], [AS_HELP_STRING([--without-nvcc],
	[build no CUDA programs: none for the demo, and no tests that run them])],
	[], [with_nvcc=yes])
AC_ARG_VAR([CUDA_HOME], [the CUDA toolkit, where --with-cuda does not name it])
AC_MSG_CHECKING([for the CUDA toolkit])
CUDA_DIR=
fgv_nvcc=`command -v nvcc 2>/dev/null`
AS_IF([test -n "$with_cuda" && test "x$with_cuda" != xyes], [fgv_places=$with_cuda],
	[test -n "$CUDA_HOME"], [fgv_places=$CUDA_HOME],
	[test -n "$fgv_nvcc"], [fgv_places="$(dirname "$(dirname "$(readlink -f "$fgv_nvcc")")") /usr/local/cuda /opt/cuda"],
	[fgv_places="/usr/local/cuda /opt/cuda"])
for fgv_dir in $fgv_places; do
	AS_IF([test -z "$CUDA_DIR" && test -f "$fgv_dir/include/cuda_runtime_api.h" &&
		test -f "$fgv_dir/include/cuda.h"],
		[CUDA_DIR=$fgv_dir])
done
AS_IF([test -z "$CUDA_DIR"], [AC_MSG_RESULT([no])
	AC_MSG_ERROR([no CUDA toolkit in: $fgv_places. Install NVIDIA's cuda-toolkit-13-0 (no GPU or driver is needed), or name it with --with-cuda=DIR])])
AC_MSG_RESULT([$CUDA_DIR])
AS_IF([test "x$with_nvcc" != xno && test ! -x "$CUDA_DIR/bin/nvcc"],
	[AC_MSG_ERROR([the CUDA toolkit in $CUDA_DIR has no nvcc, which the demo and the tests need; --without-nvcc leaves them out])])
CUDA_LIBDIR=
for fgv_dir in lib64 lib targets/x86_64-linux/lib; do
	AS_IF([test -z "$CUDA_LIBDIR" && test -f "$CUDA_DIR/$fgv_dir/libcudart.so.13"],
		[CUDA_LIBDIR=$CUDA_DIR/$fgv_dir])
done
AS_IF([test -z "$CUDA_LIBDIR"],
	[AC_MSG_ERROR([the CUDA toolkit in $CUDA_DIR has no libcudart.so.13, whose functions FairGV's has])])
CUDA_VERSION=$(awk '/^@%:@define CUDA_VERSION / {print $[3]}' "$CUDA_DIR/include/cuda.h")
AS_IF([test "${CUDA_VERSION:-0}" -lt 13000],
	[AC_MSG_ERROR([the CUDA toolkit in $CUDA_DIR is version ${CUDA_VERSION:-unknown}; FairGV builds with 13.0 or newer])])
CUDA_CFLAGS="-isystem $CUDA_DIR/include"
NVCC="$CUDA_DIR/bin/nvcc"
NVML_HEADER=
AS_IF([test -f "$CUDA_DIR/include/nvml.h"], [NVML_HEADER=$CUDA_DIR/include/nvml.h])
AC_SUBST([CUDA_DIR])
AC_SUBST([CUDA_LIBDIR])
AM_CONDITIONAL([CUDA_PROGRAMS],
	[test "x$with_nvcc" != xno && test "x$enable_host" != xno && test -z "$SAN_CFLAGS"])
AC_SUBST([NVML_HEADER])
AC_SUBST([CUDA_VERSION])
AC_SUBST([CUDA_CFLAGS])
AC_SUBST([NVCC])
])
