/** The scripted model of a worker, and the service whose answers it writes. */

import {inject} from 'vitest';

import type {Scripted} from './setup';

/**
 * Returns the model and the service that only this worker uses.
 *
 * Test files run beside each other, and a model has one script at a time.
 */
function findOwn(): Scripted {
  const all = inject('scripted');
  const own = all[(Number(process.env.VITEST_POOL_ID ?? 1) - 1) % all.length];
  if (!own) {
    throw new Error('The global setup started no scripted model.');
  }
  return own;
}

/** Returns the address of the scripted model. */
export const findModel = (): string => findOwn().model;

/** Returns the service whose answers the scripted model writes. */
export const findWriting = (): Scripted['service'] => findOwn().service;
