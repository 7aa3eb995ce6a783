import type {ReactNode} from 'react';

/** Stands for the drawing of a diagram. */
export default function Mermaid({value}: {value: string}): ReactNode {
  return <svg data-diagram={value} />;
}
