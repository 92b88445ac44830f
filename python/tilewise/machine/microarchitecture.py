"""What the maker of a processor calls its design: `Zen 5`. A virtual machine says `AMD EPYC` only."""

from __future__ import annotations

# Vendor, family, first and last model. Of x86 processors that have AVX2, as their makers list them.
_DESIGNS = (
    ("AuthenticAMD", 23, 0x00, 0x2F, "Zen"),
    ("AuthenticAMD", 23, 0x30, 0xFF, "Zen 2"),
    ("AuthenticAMD", 25, 0x00, 0x0F, "Zen 3"),
    ("AuthenticAMD", 25, 0x10, 0x1F, "Zen 4"),
    ("AuthenticAMD", 25, 0x20, 0x5F, "Zen 3"),
    ("AuthenticAMD", 25, 0x60, 0xAF, "Zen 4"),
    ("AuthenticAMD", 26, 0x00, 0x7F, "Zen 5"),
    ("GenuineIntel", 6, 0x3C, 0x3C, "Haswell"),
    ("GenuineIntel", 6, 0x3F, 0x3F, "Haswell"),
    ("GenuineIntel", 6, 0x45, 0x46, "Haswell"),
    ("GenuineIntel", 6, 0x3D, 0x3D, "Broadwell"),
    ("GenuineIntel", 6, 0x47, 0x47, "Broadwell"),
    ("GenuineIntel", 6, 0x4F, 0x4F, "Broadwell"),
    ("GenuineIntel", 6, 0x56, 0x56, "Broadwell"),
    ("GenuineIntel", 6, 0x4E, 0x4E, "Skylake"),
    ("GenuineIntel", 6, 0x5E, 0x5E, "Skylake"),
    ("GenuineIntel", 6, 0x55, 0x55, "Skylake-SP or Cascade Lake"),
    ("GenuineIntel", 6, 0x6A, 0x6A, "Ice Lake-SP"),
    ("GenuineIntel", 6, 0x6C, 0x6C, "Ice Lake-SP"),
    ("GenuineIntel", 6, 0x7D, 0x7E, "Ice Lake"),
    ("GenuineIntel", 6, 0x8C, 0x8D, "Tiger Lake"),
    ("GenuineIntel", 6, 0x8E, 0x8E, "Kaby Lake"),
    ("GenuineIntel", 6, 0x9E, 0x9E, "Kaby Lake"),
    ("GenuineIntel", 6, 0x97, 0x97, "Alder Lake"),
    ("GenuineIntel", 6, 0x9A, 0x9A, "Alder Lake"),
    ("GenuineIntel", 6, 0x8F, 0x8F, "Sapphire Rapids"),
    ("GenuineIntel", 6, 0xCF, 0xCF, "Emerald Rapids"),
    ("GenuineIntel", 6, 0xAD, 0xAE, "Granite Rapids"),
    ("GenuineIntel", 6, 0xAF, 0xAF, "Sierra Forest"),
)


def design(vendor: str, family: int, model: int) -> str:
    """The name of the design of that processor, empty where the table lacks it."""
    for maker, of, first, last, name in _DESIGNS:
        if (maker, of) == (vendor, family) and first <= model <= last:
            return name
    return ""
