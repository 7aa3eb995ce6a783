import {useEffect, useState} from 'react';

/** Loads the code that reads and draws formulas. */
export const loadFormulas = () =>
  import(/* webpackChunkName: "robotutor-formulas" */ './formulas').then(
    (module) => (loaded = module),
  );

/** The code that reads and draws formulas. */
export type Formulas = typeof import('./formulas');

let loaded: Formulas | null = null;

/** Returns the code for formulas once it has arrived, and loads it if it is needed. */
export function useFormulas(needed: boolean): Formulas | null {
  const [formulas, setFormulas] = useState(loaded);
  useEffect(() => {
    if (!needed || formulas) {
      return undefined;
    }
    let wanted = true;
    loadFormulas()
      .then((module) => {
        if (wanted) {
          setFormulas(module);
        }
      })
      // Without the network, formulas stay readable as TeX.
      .catch(() => undefined);
    return () => {
      wanted = false;
    };
  }, [needed, formulas]);
  return needed ? formulas : null;
}
