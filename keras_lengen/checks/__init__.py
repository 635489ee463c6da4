"""Checks of arguments and inputs; behind them stands plain mathematics."""
