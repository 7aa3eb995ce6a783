/** The data of plugins, by their name. Tests change it. */
export const globalData: Record<string, unknown> = {
  'docusaurus-theme-robotutor': {serviceUrl: '', name: 'RoboTutor', shortcut: 'mod+i'},
};

export const usePluginData = (name: string): unknown => globalData[name];

export const useAllPluginInstancesData = (name: string): Record<string, unknown> | undefined =>
  globalData[name] === undefined ? undefined : {default: globalData[name]};
