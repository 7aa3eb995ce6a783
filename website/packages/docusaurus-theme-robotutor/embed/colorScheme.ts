/** Light or dark, as the page is. */

const DARK = '(prefers-color-scheme: dark)';

/**
 * Returns true if the page is dark.
 *
 * Its `color-scheme` says so, or, if that names both, the system. A page that names none is as dark as
 * its background.
 */
function isDark(): boolean {
  const meta = document.querySelector<HTMLMetaElement>('meta[name="color-scheme"]')?.content ?? '';
  const scheme = `${getComputedStyle(document.documentElement).colorScheme} ${meta}`;
  const [dark, light] = [/\bdark\b/.test(scheme), /\blight\b/.test(scheme)];
  if (dark || light) {
    return dark && (!light || window.matchMedia(DARK).matches);
  }
  const colors = [document.body, document.documentElement].map((element: Element | null) =>
    element ? (getComputedStyle(element).backgroundColor.match(/[\d.]+/g) ?? []).map(Number) : [],
  );
  // Without a background, the browser's is white.
  const [red = 255, green = 255, blue = 255] = colors.find(([, , , alpha = 1]) => alpha > 0) ?? [];
  return 0.3 * red + 0.6 * green + 0.1 * blue < 128;
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
  window.addEventListener('load', update); // style sheets have arrived
  // Sites switch their color mode by a class or an attribute of <html> or <body>.
  const observer = new MutationObserver(update);
  observer.observe(root, {attributes: true});
  const observeBody = (): void => {
    observer.observe(document.body, {attributes: true});
    update();
  };
  if (document.body) {
    observeBody();
  } else {
    document.addEventListener('DOMContentLoaded', observeBody);
  }
}
