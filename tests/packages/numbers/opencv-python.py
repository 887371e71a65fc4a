"""Finds the contours of a square."""

import cv2
import numpy as np

picture = np.zeros((32, 32), np.uint8)
picture[4:10, 4:10] = 255
contours, _ = cv2.findContours(picture, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
assert cv2.boundingRect(contours[0]) == (4, 4, 6, 6)
