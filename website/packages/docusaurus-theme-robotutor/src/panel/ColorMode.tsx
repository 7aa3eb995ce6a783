import {useColorMode} from '@docusaurus/theme-common';
// The panel is above the pages, and so above the provider in their layout. No public module has it.
import {ColorModeProvider} from '@docusaurus/theme-common/internal';
import {useEffect, type ReactNode} from 'react';

/** Gives components of the theme, such as code blocks, the page's color mode. */
export default function ColorMode({children}: {children: ReactNode}): ReactNode {
  return (
    <ColorModeProvider>
      <FollowPage />
      {children}
    </ColorModeProvider>
  );
}

/** Docusaurus takes options that its types leave out. */
type SetColorMode = (mode: 'dark' | 'light' | null, options: {persist: boolean}) => void;

/**
 * Follows a change of color mode by the attributes of `<html>`.
 *
 * The provider itself hears of a change only through the browser's storage, which may be blocked.
 * It also writes the attributes, so the page's own mode must come out of each change unchanged.
 */
function FollowPage(): null {
  const {setColorMode}: {setColorMode: SetColorMode} = useColorMode();
  useEffect(() => {
    const {dataset} = document.documentElement;
    const read = (): string => `${dataset.theme} ${dataset.themeChoice}`;
    let seen = read();
    const observer = new MutationObserver(() => {
      if (read() === seen) {
        return; // the provider set the attributes
      }
      const mode = dataset.theme === 'dark' ? 'dark' : 'light';
      if (dataset.themeChoice === 'system') {
        setColorMode(null, {persist: false});
      }
      // A script of the site may set a mode that is not the system's and that no reader chose.
      if (dataset.themeChoice !== 'system' || dataset.theme !== mode) {
        setColorMode(mode, {persist: false}); // the page stores the choice of its reader itself
      }
      seen = read();
    });
    const attributeFilter = ['data-theme', 'data-theme-choice'];
    observer.observe(document.documentElement, {attributeFilter});
    return () => observer.disconnect();
  }, [setColorMode]);
  return null;
}
