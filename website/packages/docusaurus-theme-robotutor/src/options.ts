/** The options of the theme in `docusaurus.config`, and their check. */

import {Joi} from '@docusaurus/utils-validation';
import type {OptionValidationContext} from '@docusaurus/types';
import {MAX_SUGGESTIONS} from './panel/maxSuggestions';
import {fillContact} from './answer/contact';
import {parseShortcut} from './panel/shortcut';

/** The options of a site. Every option has a default. */
export interface Options {
  /** The address of the service. Default: the origin of the site. */
  serviceUrl?: string;
  /** A key that the service expects. Every reader of the site can see it. */
  apiKey?: string;
  /** The name in the panel's title and on the button. */
  name?: string;
  /** The first words of an empty panel. */
  greeting?: string;
  /** Questions that an empty panel offers, at most four. Default: made from the page's headings. */
  suggestions?: string[];
  /**
   * An address for questions that the book does not answer, such as a new issue or a mail. It may
   * contain `{question}` and `{page}` after a `?`.
   */
  contactUrl?: string;
  /** True shows a button on each page of the docs that copies the page as Markdown. */
  copyPage?: boolean;
  /** True offers tools to agents in browsers that have WebMCP. */
  webMcp?: boolean;
  /** False builds the site without the panel. */
  enabled?: boolean;
  /** False writes no `rag-manifest.json`, from which the index reads the addresses of pages. */
  manifest?: boolean;
  /** Keys that open and close the panel, or false for none. `mod` is Ctrl, on a Mac Command. */
  shortcut?: string | false;
}

/** Options after the check, with their defaults. `serviceUrl` has no slash at the end. */
export interface CheckedOptions {
  id: string;
  serviceUrl: string;
  apiKey?: string;
  name: string;
  greeting?: string;
  suggestions?: string[];
  contactUrl?: string;
  copyPage: boolean;
  webMcp?: boolean;
  enabled: boolean;
  manifest: boolean;
  shortcut: string | false;
}

const SERVICE_URL = /^(?:https?:\/\/[^\s/?#]+)?(?:\/[^\s?#]*)?$/i;

const serviceUrl = Joi.string().allow('').custom((value: string, joi) => {
  const trimmed = value.replace(/\/+$/, '');
  if (!SERVICE_URL.test(trimmed) || trimmed.startsWith('//')) {
    return joi.error('serviceUrl');
  }
  return trimmed;
});

const shortcut = Joi.string().custom((value: string, joi) => {
  try {
    parseShortcut(value);
    return value.toLowerCase();
  } catch (error) {
    return joi.error('shortcut', {reason: (error as Error).message});
  }
});

const contactUrl = Joi.string().custom((value: string, joi) =>
  fillContact(value, {question: '', page: ''}) === null ? joi.error('contactUrl') : value,
);

const text = (maxChars: number): Joi.StringSchema => Joi.string().trim().min(1).max(maxChars);

const schema = Joi.object<CheckedOptions>({
  serviceUrl: serviceUrl.default('').messages({
    serviceUrl:
      '{{#label}} must be an address such as https://tutor.example.org, or a path such as /tutor. ' +
      'Leave it out if the service has the same address as the site.',
  }),
  apiKey: Joi.string().pattern(/^[\x21-\x7e]+$/).messages({
    'string.pattern.base': '{{#label}} may contain only ASCII characters without spaces.',
  }),
  name: text(40).default('RoboTutor'),
  greeting: text(400),
  suggestions: Joi.array().items(text(200)).max(MAX_SUGGESTIONS),
  contactUrl: contactUrl.messages({
    contactUrl:
      '{{#label}} must begin with https://, http:// or mailto:, and may contain {question} and ' +
      '{page} only after a "?", such as mailto:help@example.org?body={question}.',
  }),
  copyPage: Joi.boolean().default(false),
  webMcp: Joi.boolean(),
  enabled: Joi.boolean().default(true),
  manifest: Joi.boolean().default(true),
  shortcut: Joi.alternatives(Joi.boolean().valid(false), shortcut)
    .default('mod+i')
    .messages({shortcut: '{{#label}}: {{#reason}}'}),
});

/** Checks the options of a site. Throws an error that names a wrong option and what is right. */
export function validateOptions({
  validate,
  options,
}: OptionValidationContext<Options | undefined, CheckedOptions>): CheckedOptions {
  return validate(schema as unknown as Parameters<typeof validate>[0], options ?? {});
}
