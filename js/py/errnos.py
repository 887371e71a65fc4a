"""Error numbers as Linux has them.

CPython is compiled with WASI's, and the C code goes on with those.
"""

import errno
import gc
import os
import posix
import sys
from operator import index

# Names, WASI's numbers and Linux's. src/isolate/adapt/errnos.rs reads the lines, too. Of two names
# with one number the second is in `errno.errorcode`.
NUMBERS = """
EPERM 63 1
ENOENT 44 2
ESRCH 71 3
EINTR 27 4
EIO 29 5
ENXIO 60 6
E2BIG 1 7
ENOEXEC 45 8
EBADF 8 9
ECHILD 12 10
EWOULDBLOCK 6 11
EAGAIN 6 11
ENOMEM 48 12
EACCES 2 13
EFAULT 21 14
ENOTBLK 105 15
EBUSY 10 16
EEXIST 20 17
EXDEV 75 18
ENODEV 43 19
ENOTDIR 54 20
EISDIR 31 21
EINVAL 28 22
ENFILE 41 23
EMFILE 33 24
ENOTTY 59 25
ETXTBSY 74 26
EFBIG 22 27
ENOSPC 51 28
ESPIPE 70 29
EROFS 69 30
EMLINK 34 31
EPIPE 64 32
EDOM 18 33
ERANGE 68 34
EDEADLK 16 35
EDEADLOCK 16 35
ENAMETOOLONG 37 36
ENOLCK 46 37
ENOSYS 52 38
ENOTEMPTY 55 39
ELOOP 32 40
ENOMSG 49 42
EIDRM 24 43
ECHRNG 106 44
EL2NSYNC 156 45
EL3HLT 107 46
EL3RST 108 47
ELNRNG 109 48
EUNATCH 110 49
ENOCSI 111 50
EL2HLT 112 51
EBADE 113 52
EBADR 114 53
EXFULL 115 54
ENOANO 104 55
EBADRQC 103 56
EBADSLT 102 57
EBFONT 101 59
ENOSTR 100 60
ENODATA 116 61
ETIME 117 62
ENOSR 118 63
ENONET 119 64
ENOPKG 120 65
EREMOTE 121 66
ENOLINK 47 67
EADV 122 68
ESRMNT 123 69
ECOMM 124 70
EPROTO 65 71
EMULTIHOP 36 72
EDOTDOT 125 73
EBADMSG 9 74
EOVERFLOW 61 75
ENOTUNIQ 126 76
EBADFD 127 77
EREMCHG 128 78
ELIBACC 129 79
ELIBBAD 130 80
ELIBSCN 131 81
ELIBMAX 132 82
ELIBEXEC 133 83
EILSEQ 25 84
ERESTART 134 85
ESTRPIPE 135 86
EUSERS 136 87
ENOTSOCK 57 88
EDESTADDRREQ 17 89
EMSGSIZE 35 90
EPROTOTYPE 67 91
ENOPROTOOPT 50 92
EPROTONOSUPPORT 66 93
ESOCKTNOSUPPORT 137 94
EOPNOTSUPP 138 95
ENOTSUP 138 95
EPFNOSUPPORT 139 96
EAFNOSUPPORT 5 97
EADDRINUSE 3 98
EADDRNOTAVAIL 4 99
ENETDOWN 38 100
ENETUNREACH 40 101
ENETRESET 39 102
ECONNABORTED 13 103
ECONNRESET 15 104
ENOBUFS 42 105
EISCONN 30 106
ENOTCONN 53 107
ESHUTDOWN 140 108
ETOOMANYREFS 141 109
ETIMEDOUT 73 110
ECONNREFUSED 14 111
EHOSTDOWN 142 112
EHOSTUNREACH 23 113
EALREADY 7 114
EINPROGRESS 26 115
ESTALE 72 116
EUCLEAN 143 117
ENOTNAM 144 118
ENAVAIL 145 119
EISNAM 146 120
EREMOTEIO 147 121
EDQUOT 19 122
ENOMEDIUM 148 123
EMEDIUMTYPE 149 124
ECANCELED 11 125
ENOKEY 150 126
EKEYEXPIRED 151 127
EKEYREVOKED 152 128
EKEYREJECTED 153 129
EOWNERDEAD 62 130
ENOTRECOVERABLE 56 131
ERFKILL 154 132
EHWPOISON 155 133
"""


def adopt():
    """Has Python use Linux's numbers. The host has C code put them into exceptions from then on."""
    rows = [line.split() for line in NUMBERS.split("\n") if line]
    wasi = {name: int(number) for name, number, _ in rows}
    linux = {name: int(number) for name, _, number in rows}
    if wasi != {name: number for name, number in vars(errno).items() if name.startswith("E")}:
        raise RuntimeError("CPython does not have the error numbers that it used to have")
    to_linux = {wasi[name]: linux[name] for name in wasi}

    # What `OSError(number, ...)` chooses its subclass by.
    for classes in gc.get_referrers(FileNotFoundError):
        if type(classes) is dict and classes.get(errno.ENOENT) is FileNotFoundError:
            break
    else:
        raise RuntimeError("CPython does not choose classes by error numbers as it used to")
    chosen = {to_linux[number]: chosen for number, chosen in classes.items()}
    classes.clear()
    classes.update(chosen)

    vars(errno).update(linux)
    errno.errorcode.clear()
    errno.errorcode.update((number, name) for name, number in linux.items())
    os.strerror = posix.strerror = make_strerror({linux[name]: wasi[name] for name in linux})

    # What has been imported by now and has numbers of its own.
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        if type(names) is not dict or module is errno:
            continue
        for name in wasi.keys() & names.keys():
            if names[name] == wasi[name]:
                names[name] = linux[name]
    if "socket" in sys.modules:
        blocking = sys.modules["socket"]._blocking_errnos
        blocking.clear()
        blocking.update((errno.EAGAIN, errno.EWOULDBLOCK))
    if "subprocess" in sys.modules:
        sys.modules["subprocess"]._del_safe.ECHILD = errno.ECHILD


def make_strerror(to_wasi, message=posix.strerror):
    def strerror(code, /):
        """Translate an error code to a message string."""
        code = index(code)
        known = to_wasi.get(code)
        if known is None:
            return f"Unknown error {code}" if code else "Success"
        return message(known)

    strerror.__module__, strerror.__qualname__ = "posix", "strerror"
    return strerror
