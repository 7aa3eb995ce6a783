/** The theme's settings in the browser. */

import {usePluginData} from '@docusaurus/useGlobalData';
import type {CheckedOptions} from './options';

/** The checked options that components use. */
export type Settings = Omit<CheckedOptions, 'id' | 'enabled'> & {
  /** Titles of pages from the parts of the book, for suggestions elsewhere than on its pages. */
  subjects?: string[];
  /** The folder of the index that is searched in the browser if no service is named. */
  searchUrl?: string;
};

/** Returns the settings of the site. */
export const useSettings = (): Settings =>
  usePluginData('docusaurus-theme-robotutor') as Settings;
