/** The theme's settings in the browser. */

import {usePluginData} from '@docusaurus/useGlobalData';
import {useMemo} from 'react';
import {useAbout} from './about';
import type {CheckedOptions} from './options';

/** The checked options that components use. */
export type Settings = Omit<CheckedOptions, 'id' | 'enabled'> & {
  /** Titles of pages from the parts of the book, for suggestions elsewhere than on its pages. */
  subjects?: string[];
  /** The folder of the index that is searched in the browser if no service is named. */
  searchUrl?: string;
};

/** Returns the settings of the site, with the service's name if the site gives none. */
export function useSettings(): Settings {
  const settings = usePluginData('docusaurus-theme-robotutor') as Settings;
  const told = useAbout();
  return useMemo(
    () => (told && settings.name === 'RoboTutor' ? {...settings, name: told.name} : settings),
    [settings, told],
  );
}
