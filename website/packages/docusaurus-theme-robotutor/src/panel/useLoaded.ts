import {useCallback, useEffect, useState} from 'react';

/** Code that is loaded when it is needed. */
export interface Loaded<T> {
  /** Null until it is loaded. */
  loaded: T | null;
  failed: boolean;
  retry: () => void;
}

/** Loads code as soon as `wanted` is true. A failed load can be tried again. */
export function useLoaded<T>(load: () => Promise<T>, wanted: boolean): Loaded<T> {
  const [loaded, setLoaded] = useState<{code: T} | null>(null);
  const [failed, setFailed] = useState(false);
  const needed = wanted && !loaded && !failed;
  useEffect(() => {
    if (needed) {
      load().then(
        (code) => setLoaded({code}),
        () => setFailed(true),
      );
    }
  }, [needed, load]);
  const retry = useCallback(() => setFailed(false), []);
  return {loaded: loaded?.code ?? null, failed, retry};
}
