"""Documentation, and the scripts that write its generated pages."""

import trainers  # noqa: F401, lets programs start without TensorFlow's notes.
