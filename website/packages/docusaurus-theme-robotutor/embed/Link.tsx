import type {ComponentProps, ReactNode} from 'react';

/** Shows a link that the browser follows. */
export default function Link({to, ...props}: ComponentProps<'a'> & {to?: string}): ReactNode {
  return <a href={to} {...props} />;
}
