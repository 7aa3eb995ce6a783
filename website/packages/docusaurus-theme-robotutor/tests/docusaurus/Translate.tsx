/** Returns a message with its placeholders filled in, as an untranslated site does. */
export function translate(
  {message}: {id?: string; message: string},
  values: Record<string, string | number> = {},
): string {
  return message.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}
