"""Shared vocabulary: plain data, ids, ports, errors and settings; imports no other folder of this
package.
"""
