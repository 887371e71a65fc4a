"""Writes slides and reads them."""

import io

import pptx

slides = pptx.Presentation()
slides.slides.add_slide(slides.slide_layouts[0]).shapes.title.text = "Hello"
file = io.BytesIO()
slides.save(file)
assert pptx.Presentation(file).slides[0].shapes.title.text == "Hello"
