import type {ReactNode} from 'react';
import Link from '@docusaurus/Link';
import Layout from '@theme/Layout';

import WalkingFigure from '../components/WalkingFigure';
import styles from './index.module.css';

type Module = {to: string; title: string; line: string};

const MODULES: Module[] = [
  {
    to: '/docs/module-1',
    title: 'Foundations of physical AI and ROS 2',
    line: 'Why a body changes the problem, and the nodes, topics, services and actions that hold a robot together.',
  },
  {
    to: '/docs/module-2',
    title: 'Robot simulation with Gazebo',
    line: 'Worlds, robot models, contact and noisy sensors, until a simulated robot answers to the same commands as a real one.',
  },
  {
    to: '/docs/module-3',
    title: 'NVIDIA Isaac and robot autonomy',
    line: 'Seeing, mapping and planning in Isaac Sim and Nav2, and what it takes for a policy to survive the real world.',
  },
  {
    to: '/docs/module-4',
    title: 'Humanoids and vision-language-action',
    line: 'Kinematics, walking and grasping, robots that act on what you tell them, and keeping people safe around them.',
  },
];

export default function Home(): ReactNode {
  return (
    <Layout description="A textbook in four modules: ROS 2, simulation, robot autonomy and humanoid robots.">
      <main className={styles.page}>
        <header className={styles.hero}>
          <div>
            <h1>Physical AI & Humanoid Robotics</h1>
            <p className={styles.lead}>
              A program can be wrong and run again. A robot that is wrong falls over. This textbook takes you from
              your first ROS 2 node to a humanoid that listens, plans and walks.
            </p>
            <div className={styles.actions}>
              <Link className={styles.start} to="/docs/intro">
                Start reading
              </Link>
              <Link to="/docs/syllabus">See the syllabus</Link>
            </div>
          </div>
          <figure className={styles.figure}>
            <WalkingFigure />
            <figcaption>
              A biped in mid-step. To stop, the swing foot has to land at the capture point. Chapter 4.2 works out
              where that is.
            </figcaption>
          </figure>
        </header>

        <section className={styles.contents} aria-labelledby="modules">
          <h2 id="modules">Four modules</h2>
          <ol className={styles.modules}>
            {MODULES.map(({to, title, line}, index) => (
              <li key={to}>
                <Link className={styles.card} to={to}>
                  <span className={styles.number}>Module {index + 1}</span>
                  <h3>{title}</h3>
                  <p>{line}</p>
                </Link>
              </li>
            ))}
          </ol>
          <p className={styles.also}>
            You need Python, linear algebra and basic mechanics; no robot.{' '}
            <Link to="/docs/hardware-requirements">What the labs run on</Link>,{' '}
            <Link to="/docs/assessments">how the course is graded</Link>, and the{' '}
            <Link to="/docs/module-4/capstone-project">capstone project</Link> it leads to.
          </p>
        </section>
      </main>
    </Layout>
  );
}
