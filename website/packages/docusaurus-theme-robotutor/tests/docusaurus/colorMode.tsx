import {createContext, useContext, useMemo, useState, type ReactNode} from 'react';

type Mode = 'light' | 'dark';

const Context = createContext<{colorMode: Mode; setColorMode: (mode: Mode | null) => void}>({
  colorMode: 'light',
  setColorMode: () => {},
});

/** Keeps a color mode and, as Docusaurus does, writes it to the attributes of `<html>`. */
export function ColorModeProvider({children}: {children: ReactNode}): ReactNode {
  const [colorMode, setMode] = useState<Mode>('light');
  const value = useMemo(
    () => ({
      colorMode,
      setColorMode: (mode: Mode | null) => {
        const {dataset} = document.documentElement;
        dataset.theme = mode ?? 'light';
        dataset.themeChoice = mode ?? 'system';
        setMode(mode ?? 'light');
      },
    }),
    [colorMode],
  );
  return <Context.Provider value={value}>{children}</Context.Provider>;
}

export const useColorMode = (): {colorMode: Mode; setColorMode: (mode: Mode | null) => void} =>
  useContext(Context);
