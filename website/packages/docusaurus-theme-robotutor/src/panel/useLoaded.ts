import {useCallback, useEffect, useState} from 'react';

/** Code that is loaded when it is needed. */
interface Loaded<T> {
  /** Null until it is loaded. */
  loaded: T | null;
  failed: boolean;
  retry: () => void;
}

/**
 * Loads code as soon as `wanted` is true.
 *
 * A failed load can be tried again. It is tried again when the browser is back online.
 */
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
  useEffect(() => {
    window.addEventListener('online', retry);
    return () => window.removeEventListener('online', retry);
  }, [retry]);
  return {loaded: loaded?.code ?? null, failed, retry};
}
