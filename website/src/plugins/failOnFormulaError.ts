/** The fields of a vfile and of its messages that this plugin reads. */
type Message = {source?: string; line?: number; reason: string; cause?: unknown};
type Page = {messages: Message[]};

/**
 * Rehype plugin that fails the build if KaTeX cannot read a formula.
 *
 * Without it, rehype-katex only records a message and prints the formula's source in red, and
 * nobody would notice before publication. The plugin must come after rehype-katex in the list.
 */
export default function failOnFormulaError() {
  return (_tree: unknown, page: Page): void => {
    const found = page.messages.find((message) => message.source === 'rehype-katex');
    if (found) {
      const cause = found.cause instanceof Error ? found.cause.message : found.reason;
      throw new Error(`KaTeX cannot read the formula on line ${found.line ?? '?'}: ${cause}`);
    }
  };
}
