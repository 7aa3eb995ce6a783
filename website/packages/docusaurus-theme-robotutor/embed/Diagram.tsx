import CodeBlock from './CodeBlock';

/** The source of a diagram. What draws diagrams is larger than the rest of the script. */
export const Diagram = ({source}: {source: string}) => (
  <CodeBlock language="mermaid">{source}</CodeBlock>
);
