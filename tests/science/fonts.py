import io
import warnings

import matplotlib.pyplot as plt
from PIL import Image, ImageChops

warnings.simplefilter("error")  # matplotlib warns of each character that no font has
TEXTS = ["苹果 Äpfel", "りんご", "사과", "🍎 ✅"]


def drawn(title, format="png", **settings):
    with plt.rc_context(settings):
        figure = plt.figure(figsize=(2, 1))
        figure.suptitle(title)
        file = io.BytesIO()
        figure.savefig(file, format=format)
        plt.close(figure)
        return file.getvalue()


def picture(title, **settings):
    return Image.open(io.BytesIO(drawn(title, **settings))).convert("L")


pictures = [picture(text) for text in TEXTS]
different = all(
    ImageChops.difference(one, other).getbbox()
    for number, one in enumerate(pictures)
    for other in pictures[:number]
)
# The names under which desktops have such fonts.
for settings in (
    {"font.sans-serif": ["SimHei", "Arial"]},
    {"font.family": "Noto Sans CJK JP"},
    {"font.family": ["Malgun Gothic", "DejaVu Sans"]},
):
    picture("苹果", **settings)
formats = [drawn("苹果 🍎", format)[:4] for format in ("svg", "pdf", "jpg")]
[different, formats == [b"<?xm", b"%PDF", b"\xff\xd8\xff\xe0"]]
