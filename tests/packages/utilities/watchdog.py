"""Sees that a file appears, by looking again and again."""

import time

from watchdog.events import FileSystemEventHandler
from watchdog.observers.polling import PollingObserver

seen = []
handler = FileSystemEventHandler()
handler.on_created = lambda event: seen.append(event.src_path)
observer = PollingObserver(timeout=0.05)
observer.schedule(handler, ".")
observer.start()
time.sleep(0.2)
open("new.txt", "w").close()
time.sleep(0.5)
observer.stop()
observer.join()
assert any(path.endswith("new.txt") for path in seen)
