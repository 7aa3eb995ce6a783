/** The data that Docusaurus gives to components. */

import {readSite} from './site';

export const usePluginData = () => readSite().settings;

/** Other plugins do not exist. */
export const useAllPluginInstancesData = (): undefined => undefined;

export default function useDocusaurusContext(): {siteConfig: {title: string}} {
  return {siteConfig: {title: document.title}};
}
