/** The theme's settings in the browser. */

import {usePluginData} from '@docusaurus/useGlobalData';
import {useMemo} from 'react';
import {useAbout} from './about';
import type {CheckedOptions} from './options';
import type {ServiceSettings} from './service/requests';

/** The checked options that components use. */
export type Settings = Omit<CheckedOptions, 'id' | 'enabled'> & {
  /** Titles of pages from the parts of the book, for suggestions elsewhere than on its pages. */
  subjects?: string[];
  searchUrl?: ServiceSettings['searchUrl'];
};

/** Returns the settings as the site gives them; the same object each time. */
export const useSiteSettings = (): Settings =>
  usePluginData('docusaurus-theme-robotutor') as Settings;

/** Returns the settings of the site, with the service's name if the site gives none. */
export function useSettings(): Settings {
  const settings = useSiteSettings();
  const told = useAbout();
  return useMemo(
    () => (told && settings.name === 'RoboTutor' ? {...settings, name: told.name} : settings),
    [settings, told],
  );
}
