import {useEffect, useState} from 'react';

const load = () => import(/* webpackChunkName: "robotutor-formulas" */ './formulas');

/** The code that reads and draws formulas. */
export type Formulas = Awaited<ReturnType<typeof load>>;

let loaded: Formulas | null = null;

/** Returns the code for formulas once it has arrived, and loads it if it is needed. */
export function useFormulas(needed: boolean): Formulas | null {
  const [formulas, setFormulas] = useState(loaded);
  useEffect(() => {
    if (!needed || formulas) {
      return undefined;
    }
    let wanted = true;
    load()
      .then((module) => {
        loaded = module;
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
