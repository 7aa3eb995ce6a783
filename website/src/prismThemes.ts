import type {PrismTheme} from 'prism-react-renderer';

/** The colors of a code theme. Each has a contrast of at least 4.5:1 with the background. */
type Palette = {
  background: string;
  plain: string;
  comment: string;
  keyword: string;
  name: string;
  string: string;
  number: string;
  inserted: string;
  deleted: string;
};

function codeTheme(palette: Palette): PrismTheme {
  return {
    plain: {color: palette.plain, backgroundColor: palette.background},
    styles: [
      {
        types: ['comment', 'prolog', 'doctype', 'cdata'],
        style: {color: palette.comment, fontStyle: 'italic'},
      },
      {
        types: ['keyword', 'atrule', 'tag', 'key', 'important', 'selector', 'directive'],
        style: {color: palette.keyword},
      },
      {types: ['function', 'class-name', 'attr-name', 'property'], style: {color: palette.name}},
      {types: ['string', 'char', 'attr-value', 'url', 'regex'], style: {color: palette.string}},
      {
        types: ['number', 'boolean', 'constant', 'builtin', 'symbol', 'variable', 'decorator'],
        style: {color: palette.number},
      },
      {types: ['inserted'], style: {color: palette.inserted}},
      {types: ['deleted'], style: {color: palette.deleted}},
      {types: ['punctuation', 'operator'], style: {color: palette.plain}},
    ],
  };
}

export const lightCode = codeTheme({
  background: '#f5f2ea',
  plain: '#2b2f33',
  comment: '#6a655a',
  keyword: '#8a2f5d',
  name: '#0b5a78',
  string: '#3f6212',
  number: '#9a3d0a',
  inserted: '#3f6212',
  deleted: '#a11d2b',
});

export const darkCode = codeTheme({
  background: '#1e242a',
  plain: '#d5dbe1',
  comment: '#98a1ab',
  keyword: '#f0a3c4',
  name: '#86c8e6',
  string: '#b4d48a',
  number: '#f2b183',
  inserted: '#b4d48a',
  deleted: '#f49aa2',
});
