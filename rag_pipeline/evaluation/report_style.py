"""The style sheet of the report's page: one column on a phone, light or dark as the reader is."""

from typing import Final

PAGE_STYLE: Final = """
:root { --ink: #1b1f24; --paper: #fff; --line: #d5dae0; --soft: #f3f5f7; --good: #1a7f4b;
  --bad: #b42318; --near: #8a6100; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --paper: #14171a; --line: #3a4149;
  --soft: #1e2328; --good: #5fd39a; --bad: #ff8b7e; --near: #e5b454; } }
* { box-sizing: border-box; }
body { margin: 0; color: var(--ink); background: var(--paper); line-height: 1.5;
  font-family: system-ui, sans-serif; overflow-wrap: anywhere; }
main { max-width: 72rem; margin: 0 auto; padding: 1rem; }
h1 { margin: 0.5rem 0; font-size: 1.6rem; }
h2 { margin: 2rem 0 0.5rem; font-size: 1.2rem; border-bottom: 1px solid var(--line); }
h3 { margin: 0 0 0.3rem; font-size: 1rem; }
h4 { margin: 0.3rem 0; font-size: 0.85rem; }
p { margin: 0.3rem 0; }
ul, ol { margin: 0.3rem 0; padding-left: 1.4rem; }
small { opacity: 0.8; }
code { font-family: ui-monospace, monospace, monospace; font-size: 0.85em; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
th, td { padding: 0.3rem 0.6rem; text-align: left; border-bottom: 1px solid var(--line); }
thead th { background: var(--soft); }
tbody th { font-weight: 500; }
.gates { list-style: none; padding: 0; }
.gates li { border-width: 0 0 0 4px; border-style: solid; padding: 0.2rem 0.6rem; margin: 0.3rem 0;
  background: var(--soft); }
.good { border-color: var(--good); }
.good::marker, .good > b, p.good { color: var(--good); }
.bad { border-color: var(--bad); }
.bad::marker, .bad > b, p.bad, .badge.bad { color: var(--bad); }
.near { border-color: var(--near); }
.near::marker, .near > b { color: var(--near); }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30rem), 1fr));
  gap: 1rem; }
figure { margin: 0; }
svg { width: 100%; height: auto; display: block; }
svg text { font-family: system-ui, sans-serif; }
article { border: 1px solid var(--line); border-radius: 6px; padding: 0.7rem; margin: 0.7rem 0; }
summary { cursor: pointer; padding: 0.4rem 0; font-weight: 600; }
.badge { display: inline-block; font-size: 0.75rem; border: 1px solid var(--line);
  border-radius: 4px; padding: 0 0.4rem; margin: 0 0.3rem 0.2rem 0; }
.pair { display: grid; grid-template-columns: 2fr 3fr; gap: 1rem; font-size: 0.9rem; }
.pair li { border-left: 3px solid transparent; padding-left: 0.5rem; margin: 0.3rem 0; }
.pair li.good { border-color: var(--good); }
.pair li.bad { border-color: var(--bad); }
.pair li.near { border-color: var(--near); }
.excerpt { font-size: 0.8rem; opacity: 0.8; max-height: 3em; overflow: hidden; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1rem; font-size: 0.85rem; }
dt { font-weight: 500; }
dd { margin: 0; }
@media (max-width: 45rem) {
  .pair { grid-template-columns: 1fr; }
  dl { grid-template-columns: 1fr; }
  dd { margin: 0 0 0.4rem; }
  thead { display: none; }
  tr { display: block; border-bottom: 1px solid var(--line); padding: 0.4rem 0; }
  th, td { display: block; border: 0; padding: 0.1rem 0.3rem; }
  tbody th { font-weight: 600; }
  td::before { content: attr(data-label) ": "; opacity: 0.8; }
}
"""
