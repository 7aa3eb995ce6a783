import {Fragment} from 'react';

/** The panel has no components that need the color mode. Its style sheet reads it from the page. */
export default Fragment;
