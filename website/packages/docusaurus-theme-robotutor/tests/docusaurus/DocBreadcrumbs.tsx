import type {ReactNode} from 'react';

/** Stands for the site's breadcrumbs. */
const DocBreadcrumbs = (): ReactNode => <nav>breadcrumbs of the site</nav>;

export default DocBreadcrumbs;
