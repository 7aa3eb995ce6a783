import type {ReactNode} from 'react';

/** Shows code as the theme's own block does, without its colors. */
export default function CodeBlock(props: {children: string; language?: string}): ReactNode {
  return (
    <pre className={`language-${props.language ?? 'text'}`}>
      <code>{props.children}</code>
    </pre>
  );
}
