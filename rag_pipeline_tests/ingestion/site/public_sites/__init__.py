"""Three sites with the structure of public Docusaurus sites: configuration, folders and options.

The structure is that of the websites of Jest, React Native and Docusaurus itself, unlike the texts.
"""

from __future__ import annotations

from typing import Final

from rag_pipeline_tests.ingestion.site.public_sites.several import SEVERAL
from rag_pipeline_tests.ingestion.site.public_sites.site import PublicSite
from rag_pipeline_tests.ingestion.site.public_sites.typed import TYPED
from rag_pipeline_tests.ingestion.site.public_sites.versioned import VERSIONED

__all__ = ["PUBLIC_SITES", "PublicSite"]

PUBLIC_SITES: Final = {"versioned": VERSIONED, "typed": TYPED, "several": SEVERAL}
