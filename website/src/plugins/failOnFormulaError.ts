/** The parts of a vfile and its messages that this plugin reads. */
type Message = {source?: string; line?: number; reason: string; cause?: unknown};
type Page = {messages: Message[]};

/**
 * Rehype plugin that makes a formula KaTeX cannot read an error.
 *
 * rehype-katex only notes such a formula and prints its source in red, which would go live
 * unseen. Goes after rehype-katex in the list.
 */
export default function failOnFormulaError() {
  return (_tree: unknown, page: Page): void => {
    const found = page.messages.find((message) => message.source === 'rehype-katex');
    if (found) {
      const cause = found.cause instanceof Error ? found.cause.message : found.reason;
      throw new Error(`formula on line ${found.line ?? '?'}: ${cause}`);
    }
  };
}
