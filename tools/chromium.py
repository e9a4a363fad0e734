"""Find an installed Chromium for the checks of the site: ``python -m tools.chromium`` prints its path or fails."""

import os
import shutil
import sys

USUAL_PLACES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)


def find() -> str | None:
    """Return the path of the browser that the variable CHROMIUM names, else of one in a usual place, else None."""
    wanted = os.environ.get("CHROMIUM")
    return next(filter(None, map(shutil.which, [wanted] if wanted else USUAL_PLACES)), None)


if __name__ == "__main__":
    sys.exit(print(path) if (path := find()) else "Neither Chromium nor Chrome was found; CHROMIUM can name one.")
