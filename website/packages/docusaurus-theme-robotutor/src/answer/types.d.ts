/// <reference types="@docusaurus/theme-classic" />
