// Run docusaurus.config with Docusaurus's own loader, and print the values that the pipeline needs.
//
// Usage: node load_config.cjs CONFIG_FILE FOLDER_OF_DOCUSAURUS_CORE
// The last line of standard output is a JSON object: {"config": ...} or {"error": "..."}.
'use strict';

const {createRequire} = require('node:module');
const path = require('node:path');

const [configFile, core] = process.argv.slice(2);
const siteDir = path.dirname(configFile);
const PLUGINS = {
  pluginContentDocs: '@docusaurus/plugin-content-docs',
  pluginContentBlog: '@docusaurus/plugin-content-blog',
  pluginContentPages: '@docusaurus/plugin-content-pages',
};
const OPTIONS = ['id', 'path', 'routeBasePath', 'lastVersion', 'versions', 'includeCurrentVersion',
  'disableVersioning', 'onlyIncludeVersions', 'include', 'exclude', 'numberPrefixParser'];

// The configuration may print. Only the result belongs on standard output.
const write = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);

function finish(result) {
  write(`\n${JSON.stringify(result)}\n`, () => process.exit(0));
}

function requireFirst(...names) {
  for (const name of names) {
    const file = path.join(core, name);
    try {
      require.resolve(file);
    } catch {
      continue;
    }
    return require(file);
  }
  throw new Error(`this version of Docusaurus has no ${names[0]}`);
}

/** Return the name of a plugin that builds pages, whatever form an entry of `plugins` has. */
function findPlugin(plugin, siteRequire, resolveModuleName) {
  if (typeof plugin === 'function') {
    return PLUGINS[plugin.name];
  }
  if (typeof plugin !== 'string') {
    return undefined;
  }
  try {
    const file = siteRequire.resolve(resolveModuleName(plugin, siteRequire, 'plugin'));
    const place = file.split(path.sep).join('/');
    return Object.values(PLUGINS).find((name) => place.includes(`/${name}/`));
  } catch {
    return undefined; // the build of the site reports a plugin that is missing
  }
}

/** Return the name of a plugin that may build pages although it is not Docusaurus's own. */
function nameOther(plugin, options) {
  return typeof plugin === 'string' && options?.routeBasePath ? plugin : undefined;
}

/** Return a value that JSON can hold. */
const asValue = (value) => (typeof value === 'function' ? 'a function' : value);

/** Return the settings of the locales that decide addresses and folders. */
function describeLocales(i18n) {
  const own = ([name, {path: folder, url, baseUrl, translate}]) =>
    [name, {path: folder, url, baseUrl, translate}];
  return {
    path: i18n?.path,
    defaultLocale: i18n?.defaultLocale,
    locales: i18n?.locales,
    localeConfigs: Object.fromEntries(Object.entries(i18n?.localeConfigs ?? {}).map(own)),
  };
}

/** Return the message of the error that caused all others. */
function describe(error) {
  return error?.cause ? describe(error.cause) : String(error?.message ?? error);
}

async function load() {
  const {loadContext} = requireFirst('lib/server/site.js', 'lib/server/index.js');
  const {loadPresets} = requireFirst('lib/server/plugins/presets.js');
  const {resolveModuleName} = requireFirst('lib/server/plugins/moduleShorthand.js');
  const {DEFAULT_CONFIG} = requireFirst('lib/server/configValidation.js');
  const context = await loadContext({siteDir, config: configFile});
  const {siteConfig} = context;
  const siteRequire = createRequire(configFile);
  const presets = await loadPresets(context);
  const plugins = [...presets.plugins, ...siteConfig.plugins]
    .filter(Boolean)
    .map((entry) => (Array.isArray(entry) ? entry : [entry]))
    .map(([plugin, options]) =>
      [findPlugin(plugin, siteRequire, resolveModuleName) ?? nameOther(plugin, options), options])
    .filter(([plugin]) => plugin)
    .map(([plugin, options]) => [
      plugin,
      Object.fromEntries(OPTIONS.map((name) => [name, asValue(options?.[name])])),
    ]);
  const own = (name) => {
    const value = siteConfig.markdown?.[name];
    return value === DEFAULT_CONFIG.markdown?.[name] ? undefined : value;
  };
  return {
    url: siteConfig.url,
    baseUrl: siteConfig.baseUrl,
    trailingSlash: siteConfig.trailingSlash,
    markdown: {
      format: own('format'),
      parseFrontMatter: own('parseFrontMatter') && true,
      preprocessor: own('preprocessor') && true,
    },
    i18n: describeLocales(siteConfig.i18n),
    plugins,
  };
}

load().then(
  (config) => finish({config}),
  (error) => finish({error: describe(error)}),
);
