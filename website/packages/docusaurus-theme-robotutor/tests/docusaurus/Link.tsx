import type {ComponentProps, ReactNode} from 'react';

/** Shows a link that the site's router would follow. */
export default function Link({to, ...props}: ComponentProps<'a'> & {to?: string}): ReactNode {
  return <a href={to} {...props} />;
}
