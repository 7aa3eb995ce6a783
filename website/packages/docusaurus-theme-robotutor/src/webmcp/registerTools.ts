/** WebMCP: tools that the page offers to an agent in the browser, if the browser has the interface. */

import type {AnswerEvent, AnswerRequest} from '../service/protocol';
import {ServiceError} from '../service/problems';
import {sayProblem} from '../service/words';
import type {Settings} from '../settings';
import {ask} from '../static/ask';

/** The part of `modelContext` that this package uses. */
interface ModelContext {
  registerTool?: (tool: Tool) => unknown;
  provideContext?: (context: {tools: Tool[]}) => unknown;
}

interface Tool {
  name: string;
  title: string;
  description: string;
  inputSchema: object;
  annotations: {readOnlyHint: boolean};
  execute: (input: unknown) => Promise<{content: {type: 'text'; text: string}[]; isError?: boolean}>;
}

const MAX_QUESTION_CHARS = 2_000;
const MAX_EXCERPT_CHARS = 600;

/** Returns the browser's interface for the tools of a page; null if it has none. */
export function findModelContext(): ModelContext | null {
  const places = [document, navigator] as unknown as {modelContext?: ModelContext}[];
  return places.map((place) => place.modelContext).find(Boolean) ?? null;
}

/**
 * Offers `search_docs` and `ask` to the agent of the browser. It never throws.
 *
 * @param title The title of the site, which the descriptions name.
 */
export function registerTools(settings: Settings, title: string): void {
  const context = findModelContext();
  const tools = makeTools(settings, title);
  try {
    if (context?.registerTool) {
      tools.forEach((tool) => context.registerTool?.(tool));
    } else {
      context?.provideContext?.({tools});
    }
  } catch (error) {
    console.warn('RoboTutor: the browser did not accept the tools of this page.', error);
  }
}

function makeTools(settings: Settings, title: string): Tool[] {
  const describe = (
    name: string,
    label: string,
    description: string,
    field: string,
    answer: (question: string) => Promise<string>,
  ): Tool => ({
    name,
    title: label,
    description,
    inputSchema: {
      type: 'object',
      properties: {[field]: {type: 'string', maxLength: MAX_QUESTION_CHARS}},
      required: [field],
    },
    annotations: {readOnlyHint: true},
    execute: async (input) => {
      const question = (input as Record<string, unknown> | null)?.[field];
      const isQuestion = typeof question === 'string' && question.trim() !== '';
      try {
        const text = isQuestion ? await answer(question) : `${field} must be a text.`;
        return {content: [{type: 'text', text}], ...(isQuestion ? {} : {isError: true})};
      } catch (error) {
        const words = error instanceof ServiceError ? error.problem.words : 'failed';
        const text = sayProblem(words, settings.name);
        return {content: [{type: 'text', text}], isError: true};
      }
    },
  });
  return [
    describe(
      'search_docs',
      `Search ${title}`,
      `Search ${title} and return passages with the addresses of their sections.`,
      'query',
      (query) => search(settings, query),
    ),
    describe(
      'ask',
      `Ask ${title}`,
      `Answer a question from ${title} only, with sources. Says so if it does not cover the question.`,
      'question',
      (question) => answerQuestion(settings, question),
    ),
  ];
}

/** Yields the events of an answer, in the order of the service. */
async function* open(settings: Settings, question: string): AsyncGenerator<AnswerEvent> {
  const request: AnswerRequest = {
    question: question.slice(0, MAX_QUESTION_CHARS),
    mode: 'normal',
    source_url: window.location.pathname,
  };
  const controller = new AbortController();
  try {
    yield* ask(settings, request, controller.signal);
  } finally {
    controller.abort(); // a search needs only the sources, so the service stops writing
  }
}

async function search(settings: Settings, query: string): Promise<string> {
  for await (const {event, data} of open(settings, query)) {
    if (event === 'sources') {
      const found = data.sources.map(({title, section, url, text}) => {
        const place = [...new Set([title, section])].filter(Boolean).join(' > ');
        return `## ${place}\n${link(url)}\n\n${text.slice(0, MAX_EXCERPT_CHARS)}`;
      });
      return found.join('\n\n') || 'Nothing was found.';
    }
    if (event === 'refusal') {
      return describeRefusal(data.message, data.related);
    }
    if (event === 'error') {
      return data.message;
    }
  }
  return 'Nothing was found.';
}

async function answerQuestion(settings: Settings, question: string): Promise<string> {
  let sources = '';
  for await (const {event, data} of open(settings, question)) {
    if (event === 'sources') {
      sources = data.sources
        .map(({number, title, section, url}) => `[${number}] ${title} > ${section}: ${link(url)}`)
        .join('\n');
    } else if (event === 'refusal') {
      return describeRefusal(data.message, data.related);
    } else if (event === 'done') {
      return `${data.text}\n\nSources:\n${sources}`;
    } else if (event === 'error') {
      return data.message;
    }
  }
  return '';
}

function describeRefusal(message: string, related: {title: string; url: string}[]): string {
  const near = related.map(({title, url}) => `- ${title}: ${link(url)}`).join('\n');
  return `${message || 'The book does not cover this.'}${near ? `\n\nRelated:\n${near}` : ''}`;
}

const link = (url: string): string => new URL(url, window.location.href).href;
