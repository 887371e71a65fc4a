"""Guesses the encoding of bytes."""

import chardet

text = "Das Mädchen aß müde drei süße Äpfel und grüßte höflich die Nachbarin über den Zaun."
assert chardet.detect(text.encode())["encoding"].lower() == "utf-8"
guess = chardet.detect("Привет, как дела? Это длинный русский текст.".encode("windows-1251"))
assert guess["encoding"].lower() == "windows-1251"
