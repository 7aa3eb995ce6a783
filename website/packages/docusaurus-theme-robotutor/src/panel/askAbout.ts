/** Asks the service for its names once in a session. */

import {setAbout, type About} from '../about';
import {isRecord, readText} from '../service/fields';
import {fetchAbout, type ServiceSettings} from '../service/requests';
import {ABOUT_KEY, openStorage, readJson, writeItem} from '../storage';

let isAsked = false;

/** Takes the names from this session, or else from the service. Without them, nothing changes. */
export async function askAbout(settings: ServiceSettings): Promise<void> {
  if (isAsked) {
    return;
  }
  isAsked = true;
  const storage = openStorage('session');
  const kept = readAbout(readJson(storage, ABOUT_KEY));
  const about = kept ?? readAbout(await fetchAbout(settings).catch(() => null));
  if (about) {
    setAbout(about);
    writeItem(storage, ABOUT_KEY, JSON.stringify(about));
  }
}

function readAbout(value: unknown): About | null {
  const [name, source, language] = isRecord(value)
    ? [readText(value.name), readText(value.source), readText(value.language)]
    : [];
  return name && source && language ? {name, source, language} : null;
}
