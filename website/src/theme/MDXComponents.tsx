import type {ComponentProps, ReactNode} from 'react';
import {useDoc} from '@docusaurus/plugin-content-docs/client';
import MDXComponents from '@theme-original/MDXComponents';

/** The title of a page, and below it the learning objectives from the page's front matter. */
function TitleWithObjectives(props: ComponentProps<'h1'>): ReactNode {
  const {frontMatter} = useDoc();
  const listed = (frontMatter as Record<string, unknown>)['learning-objectives'];
  const objectives = Array.isArray(listed) ? listed.map(String) : [];
  return (
    <>
      <MDXComponents.h1 {...props} />
      {objectives.length > 0 && (
        <aside className="objectives" aria-label="Learning objectives">
          <p className="objectivesLabel">After this page you can</p>
          <ul>
            {objectives.map((objective) => (
              <li key={objective}>{objective}</li>
            ))}
          </ul>
        </aside>
      )}
    </>
  );
}

export default {...MDXComponents, h1: TitleWithObjectives};
