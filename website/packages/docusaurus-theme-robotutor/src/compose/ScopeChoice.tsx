import type {ReactNode} from 'react';
import styles from './Composer.module.css';
import {sayScope} from './words';

/** A part of the book: all of it, the module of the page, or the page. */
export type ScopeId = 'book' | 'module' | 'page';

/** A part of the book that the reader can choose. */
export interface Scope {
  id: ScopeId;
  label: string;
}

/** The choice of the part of the book that is asked. It is hidden if there is nothing to choose. */
export function ScopeChoice(props: {
  scope: ScopeId;
  scopes: readonly Scope[];
  onScope: (scope: ScopeId) => void;
}): ReactNode {
  const {scope, scopes, onScope} = props;
  if (scopes.length < 2) {
    return null;
  }
  const choose = (value: string): void => {
    const chosen = scopes.find(({id}) => id === value);
    if (chosen) {
      onScope(chosen.id);
    }
  };
  return (
    <label className={styles.scope}>
      {sayScope()}{' '}
      <select value={scope} onChange={(event) => choose(event.target.value)}>
        {scopes.map(({id, label}) => (
          <option key={id} value={id}>
            {label}
          </option>
        ))}
      </select>
    </label>
  );
}
