"""Reading model files: which tensor lies where, in which encoding, checked before anything is computed."""
