"""Makes text in colours."""

from colorama import Fore, Style

assert Fore.RED + "a" + Style.RESET_ALL == "\x1b[31ma\x1b[0m"
