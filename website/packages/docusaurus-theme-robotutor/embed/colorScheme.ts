/** Light or dark, as the page is. */

const DARK = '(prefers-color-scheme: dark)';

/** Returns true if the page's `color-scheme` is dark, or if it is both or unset and the system is. */
function isDark(): boolean {
  const scheme = getComputedStyle(document.documentElement).colorScheme.split(' ');
  const isFixed = scheme.includes('dark') !== scheme.includes('light');
  return isFixed ? scheme.includes('dark') : window.matchMedia(DARK).matches;
}

/** Writes the color mode to an attribute of `<html>`, and again after each change. */
export function followColorScheme(): void {
  const root = document.documentElement;
  const update = (): void => {
    const mode = isDark() ? 'dark' : 'light';
    if (root.dataset.robotutorTheme !== mode) {
      root.dataset.robotutorTheme = mode;
    }
  };
  update();
  window.matchMedia(DARK).addEventListener('change', update);
  // Sites switch their color mode by a class or an attribute of <html> or <body>.
  const observer = new MutationObserver(update);
  observer.observe(root, {attributes: true});
  if (document.body) {
    observer.observe(document.body, {attributes: true});
  }
}
