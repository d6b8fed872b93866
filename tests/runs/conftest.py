from model.conftest import quick_compilation

__all__ = ["quick_compilation"]
