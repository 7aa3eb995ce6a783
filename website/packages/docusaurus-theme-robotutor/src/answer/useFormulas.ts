import {useEffect, useState} from 'react';
import type {FormulaPlugins} from './formulas';

let loaded: FormulaPlugins | null = null;

/** Returns the plugins for formulas once they have arrived, and loads them if they are needed. */
export function useFormulas(needed: boolean): FormulaPlugins | null {
  const [plugins, setPlugins] = useState(loaded);
  useEffect(() => {
    if (!needed || plugins) {
      return undefined;
    }
    let wanted = true;
    import(/* webpackChunkName: "robotutor-formulas" */ './formulas')
      .then(({makeFormulaPlugins}) => {
        loaded ??= makeFormulaPlugins();
        if (wanted) {
          setPlugins(loaded);
        }
      })
      // Without the network, formulas stay readable as TeX.
      .catch(() => undefined);
    return () => {
      wanted = false;
    };
  }, [needed, plugins]);
  return needed ? plugins : null;
}
